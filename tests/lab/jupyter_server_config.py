"""JupyterLab as the browser tests need it: no token, no browser, no root check, nothing from the internet."""

import os
import tempfile

from jupyterlab.galata import configure_jupyter_server

c = get_config()  # noqa: F821 - Jupyter provides it
tempfile.tempdir = os.environ["RINGSIDE_LAB_SCRATCH"]  # what Galata makes there is taken away with it
configure_jupyter_server(c)
tempfile.tempdir = None  # the sockets of a kernel need a short path
c.ServerApp.port = int(os.environ["RINGSIDE_LAB_PORT"])
c.ServerApp.root_dir = os.environ["RINGSIDE_LAB_ROOT"]
c.ServerApp.allow_root = True
c.JupyterNotebookApp.expose_app_in_browser = True  # Notebook 7
c.NotebookNotary.db_file = ":memory:"  # what the developer has trusted is as new here as on a fresh clone
# A page asks nothing about extensions that might be built: three processes of Node for each page that is opened.
c.ServerApp.tornado_settings = {"page_config_data": {"buildAvailable": False, "buildCheck": False}}
