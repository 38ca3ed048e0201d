#pragma once

/// @file
/// A server that answers with what it was asked.

#include <memory>
#include <string>
#include <utility>

#include <nni/async/context.hpp>
#include <nni/net/server.hpp>

namespace nni_test {

/// Opens a server whose answer is the method, the path, the query, the header `X-Thing` and the body of the request.
inline std::shared_ptr<nni::net::Server> echo_server(nni::Context& ctx, nni::net::ServerOptions options = {}) {
  auto server = nni::net::Server::create(ctx.executor(), std::move(options));
  server->route("", "/", [](const nni::net::Request& request, nni::net::Responder reply) {
    std::string text(request.method);
    text += " ";
    text += request.path;
    text += " ";
    text += request.query;
    text += " ";
    text += request.header("x-thing");
    text += " ";
    text += request.body;
    reply.send(200, text);
  });
  server->open();
  return server;
}

}  // namespace nni_test
