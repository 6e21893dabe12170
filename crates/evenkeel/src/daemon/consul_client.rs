use std::time::Duration;

use evenkeel_consul::client::{Client, UnfitServer};
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

/// Asks Consul who it is. One that cannot be asked now may be asked later: the
/// daemon starts without it.
///
/// # Errors
///
/// A Consul that statuses cannot be written to: nobody would notice that they
/// never change. (P029)
pub(super) async fn greet(client: &Client) -> Result<(), Failure> {
    let Ok(answer) = tokio::time::timeout(GREETING, client.check_server()).await else {
        tracing::warn!("Consul does not answer; trying on");
        return Ok(());
    };
    match answer {
        Ok(Some(version)) => tracing::info!(version, "Consul"),
        Ok(None) => tracing::info!("Consul (its version may not be asked for)"),
        Err(UnfitServer::Unknown(error)) => {
            tracing::warn!(%error, "Consul cannot be asked for its version; trying on");
        }
        Err(unfit) => return Err(Failure::new(Exit::Unavailable, format!("consul: {unfit}"))),
    }
    Ok(())
}

/// How long Consul may take to answer before the daemon starts without.
const GREETING: Duration = Duration::from_secs(3);

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
    use evenkeel_testkit::{Reply, Stub};

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

    // P029
    #[tokio::test]
    async fn a_server_that_cannot_be_written_to_is_refused_with_what_is_needed() {
        let old = Stub::start(|_| Reply::json(r#"{"Config":{"Version":"1.2.0"}}"#));
        let missing = Stub::start(|request| match request.path() {
            "/v1/agent/self" => Reply::json(r#"{"Config":{"Version":"1.8.7"}}"#),
            _ => Reply::status(404, ""),
        });
        let away = Stub::start(|_| Reply::Close);
        for (stub, words) in [(&old, "1.4.1"), (&missing, "/v1/txn")] {
            let refused = greet(&client_of(stub)).await.unwrap_err();
            assert!(refused.to_string().contains(words), "{refused}");
        }
        greet(&client_of(&away)).await.unwrap();
    }

    fn client_of(stub: &Stub) -> Client {
        client(&ConsulSettings {
            address: stub.address(),
            ..ConsulSettings::default()
        })
        .unwrap()
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
