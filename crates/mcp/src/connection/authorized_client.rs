//! An HTTP client that adds the access token, and asks for another one if it is refused.

use std::{collections::HashMap, sync::Arc};

use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::streamable_http_client::{
        AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;

use super::{
    access::ServerAccess,
    bounded_client::{BoundedClient, ExchangeError, HttpExchangeError},
};

type Headers = HashMap<HeaderName, HeaderValue>;

/// The client of one server, with its token.
#[derive(Clone)]
pub(crate) struct AuthorizedClient {
    inner: BoundedClient,
    access: Arc<ServerAccess>,
}

impl AuthorizedClient {
    pub(crate) fn new(inner: BoundedClient, access: Arc<ServerAccess>) -> Self {
        Self { inner, access }
    }

    /// Sends a request, and once more with another token after a refusal. A refused request has
    /// not been carried out.
    async fn authorized<T, F, S>(&self, send: F) -> Result<T, ExchangeError>
    where
        F: Fn(Option<String>) -> S,
        S: Future<Output = Result<T, ExchangeError>>,
    {
        let Ok(token) = self.access.token().await else { return Err(login_needed("")) };
        let error = match send(token.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let StreamableHttpError::AuthRequired(refused) = &error else {
            return Err(self.explained(error).await);
        };
        let challenge = &refused.www_authenticate_header;
        match self.access.other_token(token.as_deref(), challenge).await {
            Some(other) => match send(Some(other)).await {
                Ok(answer) => Ok(answer),
                Err(error) => Err(self.explained(error).await),
            },
            None => Err(self.explained(error).await),
        }
    }

    /// Returns the error to show, and notes the challenge of a refusal.
    async fn explained(&self, error: ExchangeError) -> ExchangeError {
        let challenge = match &error {
            StreamableHttpError::InsufficientScope(scope) => &scope.www_authenticate_header,
            StreamableHttpError::AuthRequired(refused) => &refused.www_authenticate_header,
            _ => return error,
        };
        if let Some(refused) = self.access.fixed_refused() {
            return StreamableHttpError::UnexpectedServerResponse(refused.into());
        }
        self.access.note(challenge).await;
        login_needed(challenge)
    }
}

fn login_needed(challenge: &str) -> ExchangeError {
    StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.to_owned()))
}

impl StreamableHttpClient for AuthorizedClient {
    type Error = HttpExchangeError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, ExchangeError> {
        self.authorized(|token| {
            let (uri, session_id) = (Arc::clone(&uri), session_id.clone());
            self.inner.post_message(uri, message.clone(), session_id, token, headers.clone())
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<(), ExchangeError> {
        self.authorized(|token| {
            let (uri, session_id) = (Arc::clone(&uri), Arc::clone(&session_id));
            self.inner.delete_session(uri, session_id, token, headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, ExchangeError> {
        self.authorized(|token| {
            let (uri, session_id) = (Arc::clone(&uri), session_id.clone());
            self.inner.get_stream(uri, session_id, last_event_id.clone(), token, headers.clone())
        })
        .await
    }
}
