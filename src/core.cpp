// Values, errors, files and the clock of the tests.
#include <nni/core/impl/axis.ipp>
#include <nni/core/impl/decimal.ipp>
#include <nni/core/impl/error.ipp>
#include <nni/core/impl/ids.ipp>
#include <nni/core/impl/json.ipp>
#include <nni/core/impl/metric.ipp>
#include <nni/core/impl/parameters.ipp>
#include <nni/core/impl/random.ipp>
#include <nni/core/impl/retry.ipp>
#include <nni/core/impl/search_space.ipp>
#include <nni/core/impl/search_space_json.ipp>
#include <nni/core/impl/time.ipp>
#include <nni/files/impl/directory.ipp>
#include <nni/files/impl/file.ipp>
#include <nni/files/impl/open.ipp>
#include <nni/files/impl/system.ipp>
#include <nni/testing/impl/manual_clock.ipp>
