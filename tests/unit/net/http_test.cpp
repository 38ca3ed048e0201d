#include "support/catch.hpp"

#include <random>
#include <string>

#include <nni/net/http_parser.hpp>

using nni::net::BodyFraming;
using nni::net::ChunkDecoder;
using nni::net::parse_response_head;

TEST_CASE("http: a response head is read once it is complete", "[net][http]") {
  const std::string text = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX-Thing:  a b \r\n\r\nbody";

  for (std::size_t size = 0; size < text.size() - 4; ++size)
    CHECK_FALSE(parse_response_head(text.substr(0, size)).value());
  const auto head = parse_response_head(text).value();

  REQUIRE(head);
  CHECK(head->status == 200);
  CHECK(head->keep_alive);
  CHECK(head->framing == BodyFraming::length);
  CHECK(head->content_length == 12);
  CHECK(head->size == text.size() - 4);
  CHECK(head->header("x-thing") == "a b");
  CHECK(head->header("absent").empty());
}

TEST_CASE("http: the end of a body is recognised as the server announces it", "[net][http]") {
  const auto head = [](const std::string& status, const std::string& fields) {
    return parse_response_head("HTTP/1.1 " + status + "\r\n" + fields + "\r\n").value().value();
  };

  CHECK(head("200 OK", "Content-Length: 0\r\n").framing == BodyFraming::none);
  CHECK(head("204 No Content", "").framing == BodyFraming::none);
  CHECK(head("200 OK", "Transfer-Encoding:  Chunked\r\n").framing == BodyFraming::chunked);
  CHECK(head("200 OK", "").framing == BodyFraming::until_close);
  CHECK_FALSE(head("200 OK", "").keep_alive);
  CHECK_FALSE(head("200 OK", "Connection: foo, Close\r\nContent-Length: 1\r\n").keep_alive);
  CHECK_FALSE(parse_response_head("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n").value()->keep_alive);
}

TEST_CASE("http: what is no response is an error", "[net][http]") {
  for (const char* wrong :
       {"SSH-2.0-OpenSSH\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1\r\n\r\n"}) {
    INFO(wrong);
    CHECK(parse_response_head(wrong).has_error());
  }
}

TEST_CASE("http: chunks are decoded however they arrive", "[net][http]") {
  const std::string text = "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\nnext";

  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    ChunkDecoder decoder;
    std::string input, output;
    bool complete = false;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      input += text.substr(at, piece);
      if (!complete) complete = decoder.feed(input, output).value();
    }
    CHECK(complete);
    CHECK(output == "hello world");
    CHECK(input == "next");
  }
}

TEST_CASE("http: chunks with a wrong size or end are an error", "[net][http]") {
  for (const char* wrong : {"x\r\n", "\r\n", "3\r\nabcd\r\n", "-1\r\n", "ffffffffffffffffff\r\n"}) {
    INFO(wrong);
    ChunkDecoder decoder;
    std::string input = wrong, output;
    CHECK(decoder.feed(input, output).has_error());
  }
}

TEST_CASE("http: a coding that cannot be undone, or two lengths that differ, are an error", "[net][http]") {
  for (const char* wrong :
       {"Transfer-Encoding: gzip", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Content-Length: 3\r\nContent-Length: 4"}) {
    INFO(wrong);
    CHECK(parse_response_head("HTTP/1.1 200 OK\r\n" + std::string(wrong) + "\r\n\r\n").has_error());
  }
  CHECK(parse_response_head("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n").value());
}

TEST_CASE("http: a trailer without end is an error", "[net][http]") {
  ChunkDecoder decoder;
  std::string output;
  std::string input = "0\r\n";
  REQUIRE_FALSE(decoder.feed(input, output).value());
  bool refused = false;
  for (int line = 0; line < 10'000 && !refused; ++line) {
    input += "X-Endless: 1\r\n";
    refused = decoder.feed(input, output).has_error();
  }
  CHECK(refused);
}

TEST_CASE("http: random bytes are refused or waited for, never misread", "[net][http]") {
  std::mt19937 random(20260901);
  for (int round = 0; round < 5'000; ++round) {
    std::string text = round % 2 == 0 ? "HTTP/1.1 200 OK\r\n" : "";
    for (std::size_t left = random() % 64; left > 0; --left) text += static_cast<char>(random() & 0xff);
    const auto head = parse_response_head(text);
    if (head && *head) CHECK((*head)->size <= text.size());
    ChunkDecoder decoder;
    std::string output;
    const std::size_t size = text.size();
    (void)decoder.feed(text, output);
    CHECK(text.size() + output.size() <= size);
  }
}

TEST_CASE("http: every status that the library sends has a reason phrase", "[net][http]") {
  for (const unsigned status : {200u, 400u, 404u, 405u, 408u, 410u, 413u, 431u, 500u, 503u})
    CHECK(nni::net::reason_phrase(status) != "Unknown");
  CHECK(nni::net::reason_phrase(799) == "Unknown");
}
