# Installed into the environment (pyproject.toml): every notebook's kernel says what to run where %%ranks is not loaded.
c.InteractiveShellApp.extensions.append("launch.load_hint")  # noqa: F821  (`c` is IPython's)
