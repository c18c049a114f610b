//! The Rust type of a number type, for code compiled for each type.

/// Runs `$body` with `$type` standing for the Rust type that the list has for `$number`, an expression of type
/// [`Number`](zarrow_array::Number); gives `None` for a number that is not in the list.
macro_rules! with_type {
    ($number:expr, $type:ident => $body:expr; $($variant:ident $element:ty),*) => {
        match $number {
            $(zarrow_array::Number::$variant => {
                type $type = $element;
                Some($body)
            })*
            _ => None,
        }
    };
}
pub(crate) use with_type;
