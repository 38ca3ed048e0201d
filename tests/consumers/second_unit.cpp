// A second translation unit of the consumers: it only has to link with the first.
#include <nni/nni.hpp>

const char* version_text();

const char* version_text() { return nni::error_category().name(); }
