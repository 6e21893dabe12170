use schemars::JsonSchema;
use serde::Deserialize;

/// The checks of which the worst counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Alias {
    /// Their node; that of this check when left out.
    #[serde(default)]
    #[schemars(example = &"db-1")]
    pub node: Option<String>,

    /// Their service, to which the checks of the node itself are added; only
    /// those when left out.
    #[serde(default)]
    #[schemars(example = &"postgres")]
    pub service: Option<String>,
}
