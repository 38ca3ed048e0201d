// The trial channel, both ends of it, and the transports on it.
#include <nni/channel/detail/batches_inl.hpp>
#include <nni/channel/json_scanner_inl.hpp>
#include <nni/channel/metrics_file_inl.hpp>
#include <nni/channel/protocol_inl.hpp>
#include <nni/channel/server_inl.hpp>
#include <nni/net/http_parser_inl.hpp>
#include <nni/net/url_inl.hpp>
#include <nni/transport/detail/tail_core_inl.hpp>
#include <nni/transport/file_tail_inl.hpp>
#include <nni/transport/http_inl.hpp>
#include <nni/trial/client_inl.hpp>
#include <nni/trial/http_connection_inl.hpp>
#include <nni/trial/reliable_sender_inl.hpp>
#include <nni/trial/report_inl.hpp>
#include <nni/trial/trial_environment_inl.hpp>
#include <nni/trial/trial_inl.hpp>
