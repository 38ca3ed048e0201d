#include "support/catch.hpp"

#include <cerrno>
#include <new>
#include <stdexcept>

#include <nni/core/error.hpp>

using namespace nni;

TEST_CASE("error: a request that the system has no room for now may succeed later", "[core][error]") {
  const int number = GENERATE(EMFILE, ENFILE, EAGAIN, ENOMEM, ENOSPC, EDQUOT, EROFS, EIO);
  const boost::system::error_code code(number, boost::system::system_category());

  CHECK(code == Condition::transient);
  CHECK_FALSE(code == Condition::permanent);
  CHECK(is_transient(Error(code, "cannot write")));
  CHECK(is_transient_errno(number));
}

TEST_CASE("error: a request that is wrong fails again", "[core][error]") {
  const int number = GENERATE(ENOENT, EACCES, EINVAL, E2BIG, ENOEXEC);
  const boost::system::error_code code(number, boost::system::generic_category());

  CHECK(code == Condition::permanent);
  CHECK_FALSE(code == Condition::transient);
  CHECK_FALSE(is_transient(Error(code, "cannot start")));
}

TEST_CASE("error: codes of the library say whether a request may succeed later", "[core][error]") {
  CHECK(is_transient(Error(Errc::connection_lost, "gone")));
  CHECK(is_transient(Error(Errc::timed_out, "no answer")));
  CHECK(is_transient(std::bad_alloc()));
  CHECK_FALSE(is_transient(Error(Errc::platform_rejected, "no")));
  CHECK_FALSE(is_transient(Error(Errc::storage_failed, "leaves the storage")));
  CHECK_FALSE(is_transient(std::runtime_error("unknown")));
}
