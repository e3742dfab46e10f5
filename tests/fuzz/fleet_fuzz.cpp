// What peers may send and request, and what one process of this host leaves to another: never a crash, and
// what is taken is written back as it was read.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fleet/protocol/file_list.hpp"
#include "fleet/protocol/request.hpp"
#include "fleet/protocol/set_state.hpp"
#include "fleet/transport/http.hpp"

using namespace spark::fleet;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_heads(std::string text) {
  std::string answers = text;
  for (auto head = parse_request(text); head && *head; head = parse_request(text)) {
    if (const auto request = parse_target((*head)->target))
      require(parse_target(to_target(*request)) == request);
  }
  for (auto head = parse_answer(answers); head && *head; head = parse_answer(answers)) continue;
}

void check_list(const std::string& text) {
  spark::staging::LineReader lines(text);
  const auto list = read_list(lines);
  if (!list) return;
  std::string again = list_header(list->size());
  for (const ListedFile& file : *list) {
    require(!file.path.view().starts_with('/'));
    again += list_line(file.path, file.size);
  }
  spark::staging::LineReader once_more(again);
  const auto read = read_list(once_more);
  require(read && read->size() == list->size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_heads(text);
  check_heads(request_text(text));
  if (const auto request = parse_target(text)) require(parse_target(to_target(*request)) == request);
  if (const auto state = parse_set_state(text, 10'000)) {
    const auto again = parse_set_state(to_text(*state), 10'000);
    require(again && *again == *state);
  }
  check_list(text);
  check_list(list_header(1) + text + "\n");
  return 0;
}
