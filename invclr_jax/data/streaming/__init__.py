"""Pictures that do not fit in memory: read where they lie, decoded and cropped when needed."""
