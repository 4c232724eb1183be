"""The version of the package, in a module without imports: records name it, and the build reads it."""

__version__ = "0.2.0.dev0"
