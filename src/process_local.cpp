// Trials as processes of this machine.
#include <nni/platforms/impl/local.ipp>
