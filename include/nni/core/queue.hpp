#pragma once

#include <boost/container/deque.hpp>

namespace nni {

/// A first-in, first-out queue for values of any size.
///
/// `std::deque` of libstdc++ allocates for every element above 256 bytes, such as messages and forms;
/// this one allocates once per 64 elements.
///
/// @tparam T  type of the elements
template <class T>
using Queue =
    boost::container::deque<T, void, typename boost::container::deque_options<boost::container::block_size<64U>>::type>;

}  // namespace nni
