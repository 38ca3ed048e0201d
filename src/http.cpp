// The HTTP server: Beast costs seconds for each file that includes it, so it has one of its own.
#include <nni/core/macros.hpp>
#if NNI_HEADER_ONLY
#error "src/http.cpp needs NNI_SEPARATE_COMPILATION, defined for the whole program"
#endif

#include <nni/net/impl/server.ipp>
