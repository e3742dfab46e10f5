#include "staging/files/walk_notes.hpp"

#include "base/described.hpp"

namespace spark::staging {

SPARK_MESSAGE(WalkNotes, (skipped, warnings, outside_links, copied_links));

std::string to_text(const WalkNotes& notes) {
  return json::serialize(to_message(notes));
}

std::optional<WalkNotes> parse_walk_notes(std::string_view text) {
  const auto message = parse_json_object(text);
  if (!message) return std::nullopt;
  auto notes = from_message<WalkNotes>(*message);
  return notes ? std::optional(std::move(*notes)) : std::nullopt;
}

}  // namespace spark::staging
