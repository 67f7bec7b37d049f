//! Lets the driver speak through our own encryption: the same checks and the same channel binding
//! as the clients. Decides nothing itself.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream as Stream;

use crate::tls::{Connector, TlsError};

/// Encrypts the driver's connections to one host.
#[derive(Clone)]
pub(super) struct Adaptor {
    pub connector: Connector,
    /// As the user wrote it: the driver's own idea of it may be an address.
    pub host: String,
}

/// An encrypted connection.
pub(super) struct Encrypted<S> {
    stream: Stream<S>,
    binding: Option<Vec<u8>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Adaptor {
    type Stream = Encrypted<S>;
    type TlsConnect = Adaptor;
    type Error = TlsError;

    fn make_tls_connect(&mut self, _domain: &str) -> Result<Adaptor, TlsError> {
        Ok(self.clone())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Adaptor {
    type Stream = Encrypted<S>;
    type Error = TlsError;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted<S>, TlsError>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let (config, name, terms) = self.connector.parts(&self.host)?;
            let connecting = tokio_rustls::TlsConnector::from(config).connect(name, stream);
            let stream = connecting.await.map_err(TlsError::of_handshake)?;
            let established = terms.check(stream.get_ref().1)?;
            Ok(Encrypted {
                stream,
                binding: established.binding,
            })
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.binding {
            Some(hash) => ChannelBinding::tls_server_end_point(hash.clone()),
            None => ChannelBinding::none(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
