//! Schemas of remote tools, normalized for models.
