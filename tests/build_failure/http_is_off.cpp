// expect: this needs the component http, which is off: link nni::http, or define NNI_WITH_HTTP=1
// A transport of a component that this program does not use.

#include <nni/transport/http.hpp>

int main() { nni::transport::Http http{{.listen = "localhost"}}; }
