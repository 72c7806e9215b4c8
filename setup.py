"""Which folders go into the wheel: all of ours, under the one package `kernelwright`.

`agents` and `tools` are names that other distributions install too, so none of our folders may land in site-packages by itself.
`kernelwright/__init__.py` puts its own folder first on `sys.path`. All else about the package is in pyproject.toml.
"""

from setuptools import find_namespace_packages, setup

FOLDERS = ("graphs", "agents", "knowledge", "tools", "data")

inner = find_namespace_packages(include=[pattern for folder in FOLDERS for pattern in (folder, f"{folder}.*")])
setup(packages=find_namespace_packages(include=["kernelwright", "kernelwright.*"]) + [f"kernelwright.{name}" for name in inner])
