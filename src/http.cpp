// The users of Boost.Beast, in a separate unit: they take much of the time and memory of a build.
#include <nni/net/detail/connection_inl.hpp>
#include <nni/net/detail/server_types_inl.hpp>
#include <nni/net/server_inl.hpp>
