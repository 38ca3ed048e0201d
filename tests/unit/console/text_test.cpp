// Widths, coloured lines and tables: what keeps text within a terminal and readable.
#include "support/catch.hpp"

#include <string>
#include <vector>

#include <nni/console/text.hpp>

using namespace nni::console;

TEST_CASE("console text: nothing that a trial wrote can command the terminal", "[console]") {
  CHECK(printable("\x1b[2Jred\a") == "?[2Jred?");
  CHECK(printable("two\nlines\tand\rmore") == "two lines and more");
  CHECK(printable("\x9b"
                  "31m") == "?31m");  // a lone byte of the C1 range
  CHECK(printable("\xc2\x9b"
                  "31m") == "?31m");  // the same as UTF-8
  CHECK(printable("caf\xc3\xa9 \xe6\x97\xa5") == "caf\xc3\xa9 \xe6\x97\xa5");
  CHECK(printable("cut \xe6\x97") == "cut ??");
}

TEST_CASE("console text: a width counts columns, not bytes", "[console]") {
  CHECK(display_width("") == 0);
  CHECK(display_width("digits") == 6);
  CHECK(display_width("caf\xc3\xa9") == 4);
  CHECK(display_width("e\xcc\x81") == 1);                 // a letter and a combining accent
  CHECK(display_width("\xe6\x97\xa5\xe6\x9c\xac") == 4);  // two wide letters
}

TEST_CASE("console text: shortening says that something is left out and cuts no letter in two", "[console]") {
  CHECK(shorten("digits", 6) == "digits");
  CHECK(shorten("handwritten", 8) == "handw...");
  CHECK(shorten("handwritten", 2) == "ha");
  CHECK(shorten("\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5", 5) == "\xe6\x97\xa5...");
  CHECK(shorten("\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5", 4) == "...");
}

TEST_CASE("console text: colour codes take no columns and are closed where the line is cut", "[console]") {
  const Line line{{"12 "}, {"failed", Look::bad}, {" and more"}};

  CHECK(render_line(line, 80, false) == "12 failed and more");
  CHECK(render_line(line, 80, true) == "12 \x1b[31mfailed\x1b[0m and more");
  CHECK(render_line(line, 9, true) == "12 \x1b[31mfai\x1b[0m...");
  CHECK(render_line(line, 12, false) == "12 failed...");
  CHECK(render_line(line, 18, false) == "12 failed and more");
}

TEST_CASE("console text: words fill lines, the last permitted line shows that there are more", "[console]") {
  const std::vector<std::string> words{"lr=0.01", "units=64", "batch=32", "activation=relu"};

  CHECK(wrap_words(words, 80, 3) == std::vector<std::string>{"lr=0.01 units=64 batch=32 activation=relu"});
  CHECK(wrap_words(words, 16, 3) == std::vector<std::string>{"lr=0.01 units=64", "batch=32", "activation=relu"});
  CHECK(wrap_words(words, 16, 2) == std::vector<std::string>{"lr=0.01 units=64", "batch=32 acti..."});
  CHECK(wrap_words({}, 16, 2).empty());
}

TEST_CASE("console text: a table aligns numbers to the right and text to the left", "[console]") {
  const Table table{{"trial", "value", "activation"}, {{"7", "0.98", "relu"}, {"12", "0.9", "sigmoid"}}};

  const TableText text = render_table(table, 0);

  CHECK(text.header == std::vector<std::string>{"trial  value  activation"});
  CHECK(text.rows == std::vector<std::string>{"    7   0.98  relu", "   12    0.9  sigmoid"});
}

TEST_CASE("console text: a table that is too wide breaks its headers first", "[console]") {
  const Table table{{"learning_rate", "hidden_units"}, {{"0.0031", "192"}}};

  const TableText text = render_table(table, 20);

  CHECK(text.header == std::vector<std::string>{"learning  hidden", "    rate   units"});
  CHECK(text.rows == std::vector<std::string>{"  0.0031     192"});
}

TEST_CASE("console text: a table that is still too wide shortens its widest cells and stays within the width",
          "[console]") {
  const Table table{{"a", "text"}, {{"1", "a long explanation of everything"}}};

  const TableText text = render_table(table, 16);

  CHECK(text.rows == std::vector<std::string>{"1  a long exp..."});
  CHECK(text.cut);
  CHECK_FALSE(render_table(table, 80).cut);
}

TEST_CASE("console text: parameters become short cells, those of a nested choice with their path", "[console]") {
  using Cells = std::vector<std::pair<std::string, std::string>>;
  const auto cells = [](const char* text) { return parameter_cells(nni::Parameters(text)); };

  CHECK(cells(R"({"lr":0.0031234567,"units":192,"act":"relu","on":true})") ==
        Cells{{"lr", "0.003123"}, {"units", "192"}, {"act", "relu"}, {"on", "true"}});
  CHECK(cells(R"({"optimizer":{"_name":"sgd","momentum":0.9}})") ==
        Cells{{"optimizer/_name", "sgd"}, {"optimizer/momentum", "0.9"}});
  CHECK(cells("{}").empty());
  CHECK(cells("not JSON") == Cells{{"", "not JSON"}});
}

TEST_CASE("console text: counts and rates are readable at every size", "[console]") {
  using namespace std::chrono_literals;

  CHECK(grouped(7) == "7");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(render_rate(0, 10s) == "");
  CHECK(render_rate(5, 0s) == "");
  CHECK(render_rate(25, 2s) == "12.5/s");
  CHECK(render_rate(123456, 10s) == "12,346/s");
  CHECK(render_rate(10, 60s) == "10.0/min");
  CHECK(render_rate(1, 1800s) == "2.0/h");
}
