#pragma once

#include <cerrno>
#include <string>

#include <sys/socket.h>
#include <sys/types.h>

#include <nni/core/error.hpp>

namespace nni::keeper {

/// The process at the other end of a Unix socket, as the kernel noted it: the one that connected, seen by the side that
/// accepted, and the one that listens, seen by the side that connected.
struct Peer {
  pid_t pid = 0;   ///< 0 where this process cannot see it
  uid_t user = 0;  ///< its effective user
};

/// Returns the process at the other end of a connected `socket`.
/// @throws Error  when the kernel does not know it
[[nodiscard]] inline Peer peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    throw Error(boost::system::error_code(errno, boost::system::system_category()),
                "the user at the other end of a Unix socket cannot be found out");
  return Peer{credentials.pid, credentials.uid};
}

/// Throws unless the other end of a connection belongs to a user. Called before the first byte is sent or read:
/// greetings carry the environment of a manager, with its secrets.
/// @param peer    from `peer_of`
/// @param user    the expected one
/// @param socket  path of the socket, for the message
/// @throws Error  `Errc::not_authorized` with both users
inline void require_user(const Peer& peer, uid_t user, const std::string& socket) {
  if (peer.user == user) return;
  throw Error(
      Errc::not_authorized,
      "the other end of " + socket + " is process " + std::to_string(peer.pid) + " of user " +
          std::to_string(peer.user) + ", and this process belongs to user " + std::to_string(user) +
          "; nothing was sent to it; run both as one user, and check who may write into the directory");
}

}  // namespace nni::keeper
