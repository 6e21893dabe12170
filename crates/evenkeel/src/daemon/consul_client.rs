use evenkeel_consul::client::Client;
use evenkeel_consul::config::{Address, BasicAuth, Config, Limits, Secret, Tls};

use crate::config::ConsulSettings;
use crate::exit::{Exit, Failure};

/// A list's answer is no longer: about twenty times that of 20,000 checks.
const LIST: u64 = 512 << 20;

/// The client that the settings ask for.
///
/// # Errors
///
/// A setting that cannot be used, by its name.
pub(super) fn client(settings: &ConsulSettings) -> Result<Client, Failure> {
    let config = config(settings).map_err(|text| Failure::new(Exit::Config, text))?;
    Client::new(&config).map_err(|error| Failure::new(Exit::Config, format!("consul: {error}")))
}

fn config(settings: &ConsulSettings) -> Result<Config, String> {
    let mut address = settings.address.clone();
    if settings.tls && !address.contains("://") {
        address.insert_str(0, "https://");
    }
    let secret = |secret: &crate::config::Secret| Secret::new(secret.expose());
    Ok(Config {
        address: address
            .parse::<Address>()
            .map_err(|error| format!("consul.address: {error}"))?,
        token: settings.token.as_ref().map(secret),
        token_file: settings.token_file.clone(),
        auth: settings.http_auth.as_ref().map(|auth| {
            let (user, password) = auth.expose().split_once(':').unwrap_or((auth.expose(), ""));
            BasicAuth {
                user: user.to_owned(),
                password: Secret::new(password),
            }
        }),
        tls: Tls {
            ca_file: settings.ca_file.clone(),
            ca_path: settings.ca_path.clone(),
            cert_file: settings.cert_file.clone(),
            key_file: settings.key_file.clone(),
            server_name: settings.tls_server_name.clone(),
            verify: !settings.tls_skip_verify,
        },
        namespace: settings.namespace.clone(),
        partition: settings.partition.clone(),
        datacenter: settings.datacenter.clone(),
        timeout: settings.request_timeout,
        limits: Limits {
            list: LIST,
            ..Limits::default()
        },
        ..Config::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_without_a_scheme_is_https() {
        let settings = ConsulSettings {
            address: "consul.test:8501".into(),
            tls: true,
            ..ConsulSettings::default()
        };
        let config = config(&settings).unwrap();
        assert_eq!(config.address, "https://consul.test:8501".parse().unwrap());
    }

    #[test]
    fn a_wrong_address_is_named() {
        let settings = ConsulSettings {
            address: "ftp://x".into(),
            ..ConsulSettings::default()
        };
        assert!(
            config(&settings)
                .unwrap_err()
                .starts_with("consul.address: ")
        );
    }
}
