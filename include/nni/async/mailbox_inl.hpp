#pragma once

#include <nni/async/mailbox.hpp>
#include <nni/core/error.hpp>

namespace nni::async::detail {

NNI_INLINE void throw_mailbox_closed() { throw Error{Errc::closed, "mailbox: closed; it accepts no further values"}; }

NNI_INLINE void throw_no_capacity() { throw Error{Errc::config_invalid, "mailbox: the capacity must be at least 1"}; }

}  // namespace nni::async::detail
