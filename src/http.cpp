// What needs Boost.Beast, in a translation unit of its own: it costs most of the time and memory of a build.
#include <nni/net/impl/connection.ipp>
#include <nni/net/impl/server.ipp>
#include <nni/net/impl/server_core.ipp>
#include <nni/net/impl/server_types.ipp>
