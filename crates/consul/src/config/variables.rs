use super::{Address, BasicAuth, Config, Secret};

/// The variables that [`Config::apply_variables`] looks up, as Consul's own
/// tools name them.
pub const VARIABLES: [&str; 13] = [
    "CONSUL_HTTP_ADDR",
    "CONSUL_HTTP_TOKEN",
    "CONSUL_HTTP_TOKEN_FILE",
    "CONSUL_HTTP_AUTH",
    "CONSUL_HTTP_SSL",
    "CONSUL_HTTP_SSL_VERIFY",
    "CONSUL_CACERT",
    "CONSUL_CAPATH",
    "CONSUL_CLIENT_CERT",
    "CONSUL_CLIENT_KEY",
    "CONSUL_TLS_SERVER_NAME",
    "CONSUL_NAMESPACE",
    "CONSUL_PARTITION",
];

/// A `CONSUL_*` variable has a value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct VariableError {
    /// The variable.
    pub name: &'static str,
    /// What is wrong with its value.
    pub reason: String,
}

impl Config {
    /// The defaults, changed by the standard variables.
    ///
    /// # Errors
    /// As [`apply_variables`](Self::apply_variables).
    pub fn from_variables(
        lookup: impl FnMut(&str) -> Option<String>,
    ) -> Result<Self, Vec<VariableError>> {
        let mut config = Self::default();
        config.apply_variables(lookup)?;
        Ok(config)
    }

    /// Sets what the standard `CONSUL_*` variables ([`VARIABLES`]) say.
    /// `lookup` is usually `|name| std::env::var(name).ok()`; an empty value
    /// counts as not set, as with Consul's own tools.
    ///
    /// ```
    /// use evenkeel_consul::config::Config;
    ///
    /// let config = Config::from_variables(|name| match name {
    ///     "CONSUL_HTTP_ADDR" => Some("consul.example:8501".into()),
    ///     "CONSUL_HTTP_SSL" => Some("true".into()),
    ///     _ => None,
    /// });
    /// assert_eq!(config.unwrap().address.to_string(), "https://consul.example:8501");
    /// ```
    ///
    /// # Errors
    /// All variables whose values cannot be used. The others have been
    /// applied.
    pub fn apply_variables(
        &mut self,
        mut lookup: impl FnMut(&str) -> Option<String>,
    ) -> Result<(), Vec<VariableError>> {
        let mut faults = Vec::new();
        let mut get = |name: &'static str| lookup(name).filter(|value| !value.trim().is_empty());

        if let Some(text) = get("CONSUL_HTTP_ADDR") {
            match text.parse::<Address>() {
                Ok(address) => self.address = address,
                Err(error) => faults.push(VariableError {
                    name: "CONSUL_HTTP_ADDR",
                    reason: error.to_string(),
                }),
            }
        }
        if let Some(text) = get("CONSUL_HTTP_TOKEN_FILE") {
            self.token_file = Some(text.into());
            self.token = None;
        }
        // Consul's tools prefer the variable to the file.
        if let Some(text) = get("CONSUL_HTTP_TOKEN") {
            self.token = Some(Secret::new(&text));
        }
        if let Some(text) = get("CONSUL_HTTP_AUTH") {
            let (user, password) = text.split_once(':').unwrap_or((&text, ""));
            self.auth = Some(BasicAuth {
                user: user.to_owned(),
                password: Secret::new(password),
            });
        }
        let mut boolean = |name, text: Option<String>| {
            let value = go_bool(text?.trim());
            if value.is_none() {
                faults.push(VariableError {
                    name,
                    reason: "neither true nor false".to_owned(),
                });
            }
            value
        };
        // An `http://` in the address does not undo the wish for TLS.
        if boolean("CONSUL_HTTP_SSL", get("CONSUL_HTTP_SSL")) == Some(true) {
            self.address = self.address.clone().with_tls();
        }
        if let Some(verify) = boolean("CONSUL_HTTP_SSL_VERIFY", get("CONSUL_HTTP_SSL_VERIFY")) {
            self.tls.verify = verify;
        }
        for (name, path) in [
            ("CONSUL_CACERT", &mut self.tls.ca_file),
            ("CONSUL_CAPATH", &mut self.tls.ca_path),
            ("CONSUL_CLIENT_CERT", &mut self.tls.cert_file),
            ("CONSUL_CLIENT_KEY", &mut self.tls.key_file),
        ] {
            if let Some(text) = get(name) {
                *path = Some(text.into());
            }
        }
        for (name, field) in [
            ("CONSUL_TLS_SERVER_NAME", &mut self.tls.server_name),
            ("CONSUL_NAMESPACE", &mut self.namespace),
            ("CONSUL_PARTITION", &mut self.partition),
        ] {
            if let Some(text) = get(name) {
                *field = Some(text);
            }
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }
}

/// The spellings of Go's `strconv.ParseBool`.
fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn with(variables: &[(&str, &str)]) -> Result<Config, Vec<VariableError>> {
        Config::from_variables(|name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_variables_it_is_the_local_agent() {
        assert_eq!(with(&[]).unwrap(), Config::default());
        assert_eq!(
            with(&[("CONSUL_HTTP_ADDR", "")]).unwrap(),
            Config::default()
        );
    }

    #[test]
    fn each_variable_sets_its_part() {
        let values: Vec<(&str, &str)> = VARIABLES
            .into_iter()
            .map(|name| {
                let value = match name {
                    "CONSUL_HTTP_ADDR" => "[::1]:8501",
                    "CONSUL_HTTP_SSL" => "TRUE",
                    "CONSUL_HTTP_SSL_VERIFY" => "0",
                    "CONSUL_HTTP_AUTH" => "ada:love:lace",
                    other => other,
                };
                (name, value)
            })
            .collect();
        let config = with(&values).unwrap();
        assert_eq!(config.address.to_string(), "https://[::1]:8501");
        assert_eq!(config.token.unwrap().reveal(), "CONSUL_HTTP_TOKEN");
        assert_eq!(
            config.token_file.as_deref(),
            Some(Path::new("CONSUL_HTTP_TOKEN_FILE"))
        );
        let auth = config.auth.unwrap();
        assert_eq!(
            (auth.user.as_str(), auth.password.reveal()),
            ("ada", "love:lace")
        );
        assert!(!config.tls.verify);
        assert_eq!(
            config.tls.ca_file.as_deref(),
            Some(Path::new("CONSUL_CACERT"))
        );
        assert_eq!(
            config.tls.ca_path.as_deref(),
            Some(Path::new("CONSUL_CAPATH"))
        );
        assert_eq!(
            config.tls.cert_file.as_deref(),
            Some(Path::new("CONSUL_CLIENT_CERT"))
        );
        assert_eq!(
            config.tls.key_file.as_deref(),
            Some(Path::new("CONSUL_CLIENT_KEY"))
        );
        assert_eq!(
            config.tls.server_name.as_deref(),
            Some("CONSUL_TLS_SERVER_NAME")
        );
        assert_eq!(config.namespace.as_deref(), Some("CONSUL_NAMESPACE"));
        assert_eq!(config.partition.as_deref(), Some("CONSUL_PARTITION"));
    }

    #[test]
    fn tls_wished_by_variable_is_not_undone_by_the_scheme() {
        let config = with(&[("CONSUL_HTTP_ADDR", "http://c:1"), ("CONSUL_HTTP_SSL", "1")]);
        assert_eq!(config.unwrap().address.to_string(), "https://c:1");
    }

    #[test]
    fn a_new_token_file_replaces_the_token_that_came_before() {
        let mut config = Config {
            token: Some(Secret::new("old")),
            ..Config::default()
        };
        let set = |name: &str| (name == "CONSUL_HTTP_TOKEN_FILE").then(|| "f".to_owned());
        config.apply_variables(set).unwrap();
        assert_eq!(config.token, None);
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let faults = with(&[
            ("CONSUL_HTTP_ADDR", "ftp://x"),
            ("CONSUL_HTTP_SSL", "yes"),
            ("CONSUL_HTTP_SSL_VERIFY", "maybe"),
        ])
        .unwrap_err();
        let names: Vec<_> = faults.iter().map(|fault| fault.name).collect();
        assert_eq!(
            names,
            [
                "CONSUL_HTTP_ADDR",
                "CONSUL_HTTP_SSL",
                "CONSUL_HTTP_SSL_VERIFY"
            ]
        );
    }

    #[test]
    fn secrets_never_print() {
        let config = with(&[
            ("CONSUL_HTTP_TOKEN", "hunter2"),
            ("CONSUL_HTTP_AUTH", "u:hunter2"),
        ]);
        let shown = format!("{config:#?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("Secret(***)"));
    }

    #[test]
    fn addresses_in_every_form() {
        for (text, shown) in [
            ("127.0.0.1:8500", "http://127.0.0.1:8500"),
            ("consul", "http://consul"),
            ("HTTPS://Consul:1", "https://Consul:1"),
            (
                "https://proxy.example/consul/",
                "https://proxy.example/consul",
            ),
            ("unix:///run/consul.sock", "unix:///run/consul.sock"),
            (" http://h:1 ", "http://h:1"),
        ] {
            assert_eq!(
                text.parse::<Address>().unwrap().to_string(),
                shown,
                "{text}"
            );
        }
        for text in [
            "", "http://", "unix://", "ftp://h", "a b", "h:99999", "h:x", "u:p@h:1", "h?x=1",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
