#include "support/catch.hpp"

#include <nni/net/url.hpp>

using nni::net::parse_url;

TEST_CASE("url: an address is split into its parts", "[net][url]") {
  const auto url = parse_url("HTTP://Worker:8080/a/b?x=1&y=2").value();

  CHECK(url.scheme == "http");
  CHECK(url.host == "worker");
  CHECK(url.port == 8080);
  CHECK(url.path == "/a/b");
  CHECK(url.query == "x=1&y=2");
  CHECK(url.target() == "/a/b?x=1&y=2");
  CHECK(url.authority() == "worker:8080");
}

TEST_CASE("url: what is left out has its usual value", "[net][url]") {
  CHECK(parse_url("http://h").value().port == 80);
  CHECK(parse_url("https://h").value().port == 443);
  CHECK(parse_url("http://h").value().target() == "/");
  CHECK(parse_url("http://h?q").value().target() == "/?q");
  CHECK(parse_url("http://h").value().authority() == "h");
}

TEST_CASE("url: IPv6 addresses stand in brackets", "[net][url]") {
  const auto url = parse_url("http://[::1]:99/p").value();

  CHECK(url.host == "::1");
  CHECK(url.port == 99);
  CHECK(url.authority() == "[::1]:99");
  CHECK(parse_url("http://[::1]/").value().port == 80);
}

TEST_CASE("url: what is no address is refused, and the refusal does not repeat the path", "[net][url]") {
  for (const char* wrong :
       {"", "h/x", "ftp://h/", "http://", "http:///x", "http://:80/", "http://u:p@h/", "http://h:0/", "http://h:65536/",
        "http://h:x/", "http://h:/", "http://[::1", "http://[::1]x/", "http://h/a b", "http://h/#f",
        "http://h/\r\nHost: evil"}) {
    INFO(wrong);
    const auto url = parse_url(wrong);
    REQUIRE(url.has_error());
    CHECK(url.error().code() == nni::Errc::config_invalid);
  }
  const auto secret = parse_url("http://h:99999/t0ken");
  CHECK(secret.error().message().find("t0ken") == std::string::npos);
}
