use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Request, StatusCode};
use serde::Deserialize;

use super::Client;
use super::listed::Listed;
use super::transport::Patience;
use crate::answer::{Answer, Meta};
use crate::error::{Error, ErrorKind};
use crate::request::{self, Query};
use crate::types::{
    AclAccess, AclQuestion, AgentSelf, CatalogService, Deregistration, HealthCheck, Node,
    NodeServices, Registration, ServiceHealth,
};
use crate::write::TxnReply;

/// Questions that one request for rights may carry (Consul's own limit).
const MAX_QUESTIONS: usize = 64;

/// The oldest Consul that status writes work with: its transactions know
/// checks from then on.
const OLDEST: (u32, u32, u32) = (1, 4, 1);

impl Client {
    /// The address of the raft leader; `None` while there is none.
    ///
    /// # Errors
    /// As every call: no connection, no answer in time, an error's status.
    pub async fn leader(&self) -> Result<Option<String>, Error> {
        let leader: Result<Answer<String>, _> = self
            .get(request::status_leader(), self.inner.transport.prompt())
            .await;
        match leader {
            Ok(answer) => Ok(Some(answer.value).filter(|address| !address.is_empty())),
            Err(error) if error.is_no_leader() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The agent's own settings. Needs `agent:read`.
    ///
    /// # Errors
    /// As [`leader`](Self::leader).
    pub async fn agent_self(&self) -> Result<AgentSelf, Error> {
        let prompt = self.inner.transport.prompt();
        self.get(request::agent_self(), prompt)
            .await
            .map(|answer| answer.value)
    }

    /// Whether the server can do what status writes need: a version of 1.4.1
    /// or later, with `/v1/txn`. Answers the version, or `None` if the token
    /// may not ask for it. (P029)
    ///
    /// # Errors
    /// [`UnfitServer`]: too old, or the question failed.
    pub async fn check_server(&self) -> Result<Option<String>, UnfitServer> {
        let version = match self.agent_self().await {
            Ok(agent) => {
                if agent
                    .config
                    .version_numbers()
                    .is_some_and(|numbers| numbers < OLDEST)
                {
                    return Err(UnfitServer::TooOld {
                        version: agent.config.version,
                    });
                }
                Some(agent.config.version)
            }
            Err(error) if error.is_denied() => None,
            Err(error) => return Err(error.into()),
        };
        // A transaction of nothing succeeds where there are transactions.
        match self.txn(Bytes::from_static(b"[]"), &Query::default()).await {
            Ok(_) => Ok(version),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => {
                Err(UnfitServer::NoTransactions)
            }
            Err(error) if error.is_denied() => Ok(version),
            Err(error) => Err(error.into()),
        }
    }

    /// The checks, of every status.
    ///
    /// # Errors
    /// As [`each_check`](Self::each_check).
    pub async fn list_checks(&self, query: &Query) -> Result<Answer<Vec<HealthCheck>>, Error> {
        self.list(request::health_state(&self.scoped(query)), query)
            .await
    }

    /// As [`list_checks`](Self::list_checks), handing out one check at a time
    /// while the answer comes in, so that the list never is in memory as JSON.
    ///
    /// # Errors
    /// As [`leader`](Self::leader), and a cut or garbled answer. After an
    /// error, forget what was handed out: it is not the whole list. A field of
    /// an unexpected type is no error: the element says so in its `faults`.
    pub async fn each_check(
        &self,
        query: &Query,
        take: impl FnMut(HealthCheck) + Send,
    ) -> Result<Meta, Error> {
        let transport = &self.inner.transport;
        let query = self.scoped(query);
        transport
            .each(
                request::health_state(&query),
                transport.patience(&query),
                take,
            )
            .await
    }

    /// The nodes.
    ///
    /// # Errors
    /// As [`each_check`](Self::each_check).
    pub async fn list_nodes(&self, query: &Query) -> Result<Answer<Vec<Node>>, Error> {
        self.list(request::catalog_nodes(&self.scoped(query)), query)
            .await
    }

    /// As [`list_nodes`](Self::list_nodes), handing out one node at a time.
    ///
    /// # Errors
    /// As [`each_check`](Self::each_check).
    pub async fn each_node(
        &self,
        query: &Query,
        take: impl FnMut(Node) + Send,
    ) -> Result<Meta, Error> {
        let transport = &self.inner.transport;
        let query = self.scoped(query);
        let request = request::catalog_nodes(&query);
        transport
            .each(request, transport.patience(&query), take)
            .await
    }

    /// The names of the services, with the tags of their instances.
    ///
    /// # Errors
    /// As [`leader`](Self::leader), and a garbled answer.
    pub async fn list_services(
        &self,
        query: &Query,
    ) -> Result<Answer<BTreeMap<String, Vec<String>>>, Error> {
        let request = request::catalog_services(&self.scoped(query));
        let answer: Answer<BTreeMap<String, Option<Vec<String>>>> = self
            .get(request, self.inner.transport.patience(query))
            .await?;
        Ok(answer.map(|services| {
            services
                .into_iter()
                .map(|(name, tags)| (name, tags.unwrap_or_default()))
                .collect()
        }))
    }

    /// The instances of a service with their metadata and their node's. Empty
    /// if there are none.
    ///
    /// # Errors
    /// As [`each_check`](Self::each_check).
    pub async fn catalog_service(
        &self,
        name: &str,
        query: &Query,
    ) -> Result<Answer<Vec<CatalogService>>, Error> {
        self.list(request::catalog_service(name, &self.scoped(query)), query)
            .await
    }

    /// As [`catalog_service`](Self::catalog_service), handing out one instance
    /// at a time.
    ///
    /// # Errors
    /// As [`each_check`](Self::each_check).
    pub async fn each_instance(
        &self,
        name: &str,
        query: &Query,
        take: impl FnMut(CatalogService) + Send,
    ) -> Result<Meta, Error> {
        let transport = &self.inner.transport;
        let query = self.scoped(query);
        let request = request::catalog_service(name, &query);
        transport
            .each(request, transport.patience(&query), take)
            .await
    }

    /// A node with its services; `None` if there is no such node.
    ///
    /// # Errors
    /// As [`leader`](Self::leader), and a garbled answer.
    pub async fn catalog_node(
        &self,
        name: &str,
        query: &Query,
    ) -> Result<Answer<Option<NodeServices>>, Error> {
        let request = request::catalog_node(name, &self.scoped(query));
        self.get(request, self.inner.transport.patience(query))
            .await
    }

    /// The checks of a node. Empty if there is no such node.
    ///
    /// # Errors
    /// As [`each_check`](Self::each_check).
    pub async fn health_node(
        &self,
        name: &str,
        query: &Query,
    ) -> Result<Answer<Vec<HealthCheck>>, Error> {
        self.list(request::health_node(name, &self.scoped(query)), query)
            .await
    }

    /// The instances of a service with their checks. Empty if there are none.
    ///
    /// # Errors
    /// As [`each_check`](Self::each_check).
    pub async fn health_service(
        &self,
        name: &str,
        query: &Query,
    ) -> Result<Answer<Vec<ServiceHealth>>, Error> {
        self.list(request::health_service(name, &self.scoped(query)), query)
            .await
    }

    /// Registers a node, a service, checks.
    ///
    /// # Errors
    /// As [`leader`](Self::leader).
    pub async fn register(&self, registration: &Registration) -> Result<(), Error> {
        self.put(request::register(registration)).await
    }

    /// Removes a check, a service or a node. To remove what is not there is a
    /// success.
    ///
    /// # Errors
    /// As [`leader`](Self::leader).
    pub async fn deregister(&self, what: &Deregistration) -> Result<(), Error> {
        self.put(request::deregister(what)).await
    }

    /// A transaction; `operations` is a JSON array. A refusal (409) is not an
    /// error here: the reply says which operations were at fault.
    ///
    /// # Errors
    /// As [`leader`](Self::leader), and a garbled answer.
    pub async fn txn(&self, operations: Bytes, query: &Query) -> Result<TxnReply, Error> {
        let request = request::txn(operations, query);
        let name = request::name_of(&request);
        let transport = &self.inner.transport;
        let whole = transport.whole(request, transport.prompt()).await?;
        if !whole.status.is_success() && whole.status != StatusCode::CONFLICT {
            return Err(whole.into_error(&name));
        }
        TxnReply::from_json(&whole.body)
            .map_err(|(offset, reason)| Error::new(name, ErrorKind::Decode { offset, reason }))
    }

    /// Which of these rights our token has, in their order. With ACLs
    /// disabled, all of them.
    ///
    /// # Errors
    /// As [`leader`](Self::leader), and an answer of another length.
    pub async fn authorize(&self, questions: &[AclQuestion]) -> Result<Vec<bool>, Error> {
        let transport = &self.inner.transport;
        let mut allowed = Vec::with_capacity(questions.len());
        for questions in questions.chunks(MAX_QUESTIONS) {
            let request = request::authorize(questions);
            let name = request::name_of(&request);
            let whole = transport.whole(request, transport.prompt()).await?;
            let disabled = whole.status == StatusCode::UNAUTHORIZED
                && whole.body.starts_with(b"ACL support disabled");
            if disabled {
                allowed.extend(questions.iter().map(|_| true));
                continue;
            }
            let answers: Vec<AclAccess> = whole.success(&name)?.json(&name)?;
            if answers.len() != questions.len() {
                let reason = format!("{} answers to {} questions", answers.len(), questions.len());
                return Err(Error::new(name, ErrorKind::Decode { offset: 0, reason }));
            }
            allowed.extend(answers.into_iter().map(|answer| answer.allow));
        }
        Ok(allowed)
    }

    /// `query` with the client's own namespace, partition and datacenter where
    /// it names none.
    pub(super) fn scoped(&self, query: &Query) -> Query {
        let config = self.inner.transport.config();
        let mut query = query.clone();
        for (field, default) in [
            (&mut query.namespace, &config.namespace),
            (&mut query.partition, &config.partition),
            (&mut query.datacenter, &config.datacenter),
        ] {
            if field.is_none() {
                field.clone_from(default);
            }
        }
        query
    }

    async fn list<T: Listed + Send>(
        &self,
        request: Request<Bytes>,
        query: &Query,
    ) -> Result<Answer<Vec<T>>, Error> {
        let transport = &self.inner.transport;
        let mut value = Vec::new();
        let meta = transport
            .each(request, transport.patience(query), |item| value.push(item))
            .await?;
        Ok(Answer { value, meta })
    }

    async fn get<T: for<'a> Deserialize<'a>>(
        &self,
        request: Request<Bytes>,
        patience: Patience,
    ) -> Result<Answer<T>, Error> {
        let name = request::name_of(&request);
        let whole = self
            .inner
            .transport
            .whole(request, patience)
            .await?
            .success(&name)?;
        Ok(Answer {
            value: whole.json(&name)?,
            meta: whole.meta,
        })
    }

    pub(super) async fn put(&self, request: Request<Bytes>) -> Result<(), Error> {
        let name = request::name_of(&request);
        let transport = &self.inner.transport;
        transport
            .whole(request, transport.prompt())
            .await?
            .success(&name)
            .map(drop)
    }
}

/// A server that status writes cannot work with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitServer {
    /// The version is too old.
    #[error("Consul {version} is too old: at least 1.4.1 is needed")]
    TooOld {
        /// The version that answered.
        version: String,
    },
    /// It has no transactions.
    #[error("this Consul does not know /v1/txn: at least version 1.4.1 is needed")]
    NoTransactions,
    /// It could not be found out.
    #[error(transparent)]
    Unknown(#[from] Error),
}
