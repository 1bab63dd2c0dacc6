"""Approves what is drawn now: `python -m tests.pictures.approve`, or `make pictures`. Look first: `make gallery`.

Pictures that look the same as the approved ones are left alone, so a commit has only what changed.
"""

from pathlib import Path

from tests.chromium import launched
from tests.pictures.camera import APPROVED, DRAWN, NAMES, Camera


def approve(camera: Camera, names: list[str], folder: Path) -> list[str]:
    """Draws the named pictures into the folder, removes others from it, and returns what was done."""
    done = []
    for name in names:
        path, drawn = folder / f"{name}.webp", camera.take(name)
        if path.exists():
            found = camera.difference(path.read_bytes(), drawn)
            if not found:
                continue
            done.append(f"{name}: changed {found}")
        else:
            done.append(f"{name}: new")
        path.write_bytes(drawn)
    for path in folder.iterdir():
        if path.stem not in names:
            path.unlink()
            done.append(f"{path.stem}: no longer drawn")
    return done


def main() -> None:
    APPROVED.mkdir(exist_ok=True)
    with launched() as browser:
        camera = Camera(browser)
        assert camera.has_fonts(), "the pictures are set in DejaVu Sans: install it (Debian: fonts-dejavu-core)"
        print("\n".join(approve(camera, NAMES, APPROVED)) or "every picture is as approved")
        camera.close()
    for path in DRAWN.glob("*.webp"):
        path.unlink()


if __name__ == "__main__":
    main()
