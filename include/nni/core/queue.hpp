#pragma once

#include <boost/container/deque.hpp>

namespace nni {

/// First in, first out, for values of any size.
///
/// `std::deque` of libstdc++ allocates for every element that is larger than half of 512 bytes, which messages and
/// forms are; this one allocates once per 64 elements.
///
/// @tparam T  type of the elements
template <class T>
using Queue =
    boost::container::deque<T, void, typename boost::container::deque_options<boost::container::block_size<64U>>::type>;

}  // namespace nni
