//! Long sessions stay light.
