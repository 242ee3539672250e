"""Pictures that do not fit in memory: read, decoded and cropped on demand."""
