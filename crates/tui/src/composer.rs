//! composer
