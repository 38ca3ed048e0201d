// The trial channel, both ends of it, and the transports on it.
#include <nni/net/impl/http.ipp>
#include <nni/net/impl/url.ipp>
#include <nni/transport/detail/impl/tail_core.ipp>
#include <nni/transport/impl/file_tail.ipp>
#include <nni/transport/impl/http.ipp>
#include <nni/trial/impl/channel_batches.ipp>
#include <nni/trial/impl/channel_server.ipp>
#include <nni/trial/impl/channel_types.ipp>
#include <nni/trial/impl/client.ipp>
#include <nni/trial/impl/courier.ipp>
#include <nni/trial/impl/json_scanner.ipp>
#include <nni/trial/impl/link.ipp>
#include <nni/trial/impl/metrics_file.ipp>
#include <nni/trial/impl/protocol.ipp>
#include <nni/trial/impl/report.ipp>
#include <nni/trial/impl/settings.ipp>
#include <nni/trial/impl/trial.ipp>
