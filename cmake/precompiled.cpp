// Precompiled headers belong to a target, and a target needs a file.
