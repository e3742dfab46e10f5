// Manifests, journals and their lines: never a crash, and what is taken is written back as it was read.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "staging/copy/partial/journal.hpp"
#include "staging/copy/verify/published_digests.hpp"
#include "staging/manifest/entry_line.hpp"
#include "staging/manifest/hash.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/names.hpp"
#include "staging/models/sums.hpp"

using namespace spark::staging;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::string hash_of(std::string_view text) {
  Hasher hasher;
  hasher.add(text);
  return to_hex(hasher.digest());
}

void check_manifest(std::string_view text) {
  const auto manifest = parse_manifest(text);
  if (!manifest) return;
  const auto again = parse_manifest(to_text(*manifest));
  require(again && again->entries == manifest->entries && again->root == manifest->root);
  require(summary_of(again->entries).hash == summary_of(manifest->entries).hash);
}

void check_line(const JournalLine& line) {
  require(!line.entry.path.view().starts_with('/') || line.kind == JournalLine::Kind::Piece);
}

// Lines of any kinds and in any order, each with its hash, as a journal has them: all up to the first wrong
// one.
void check_journal(std::string_view text) {
  std::string journal = "spark-stage journal 2\n";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line(text.substr(at, end - at));
    journal += hash_of(line) + " " + line + "\n";
    at = end + 1;
  }
  std::size_t lines = 0;
  parse_journal(journal, [&](const JournalLine& line) {
    check_line(line);
    ++lines;
  });
  std::size_t torn = 0;
  parse_journal(std::string_view(journal).substr(0, journal.size() - 1), [&](const JournalLine&) { ++torn; });
  require(torn <= lines && lines <= torn + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_manifest(text);
  const std::string lines = text + "\n";
  check_manifest(lines + "{\"seal\":\"" + hash_of(lines) +
                 "\"}\n");  // past the seal, which no fuzzer guesses
  parse_journal(text, check_line);
  check_journal(text);
  for (const char* kind : {"F ", "S ", "P ", ""}) {
    const std::string line = kind + text;
    parse_journal("spark-stage journal 2\n" + hash_of(line) + " " + line + "\n", check_line);
  }
  if (const auto entry = parse_entry(text)) {
    const auto again = parse_entry(to_line(*entry));
    require(again && *again == *entry);
    require(!entry->path.view().starts_with('/'));
  }
  is_sums_file(text);
  if (const auto sum = parse_sum_line(text)) {
    const auto again = parse_sum_line(sum->sha256 + "  " + sum->name);
    const bool is_plain = !sum->name.empty() && sum->name.find_first_of("\r") == std::string::npos;
    require(!is_plain || (again && again->sha256 == sum->sha256 && again->name == sum->name));
  }
  if (const auto name = decode_name(text)) require(encode_name(*name) == text);
  require(folder_name(text).size() <= 200 && folder_name(text).find('/') == std::string::npos);
  return 0;
}
