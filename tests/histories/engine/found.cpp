#include "tests/histories/engine/found.hpp"

#include <algorithm>
#include <system_error>

#include "base/file.hpp"

namespace spark::histories {
namespace {

namespace fs = std::filesystem;

// The values of comments "# KEY: VALUE".
std::vector<std::string> comments_in(const std::string& text, const std::string& key) {
  const std::string mark = "# " + key + ": ";
  std::vector<std::string> values;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    values.push_back(text.substr(begin, text.find('\n', begin) - begin));
    if (values.back().empty()) values.pop_back();
  }
  return values;
}

Result<Found> read_one(const Area& area, const fs::path& file) {
  const auto text = read_file(file);
  if (!text) return text.take_error();
  auto history = from_text(*text);
  if (!history) return fail_with(std::move(history.error()), file.native());
  if (auto known = check_actions(area, *history); !known) return fail_with(known.error(), file.native());
  const auto oracles = comments_in(*text, "oracle");
  const bool is_open = !comments_in(*text, "open").empty();
  if (oracles.empty() || (!is_open && comments_in(*text, "fixed").empty()))
    return fail(Errc::Invalid,
                file.native() + " needs comments \"# oracle: NAME\", and \"# open: …\" or \"# fixed: …\"");
  return Found{file, std::move(*history), oracles.front(), is_open, comments_in(*text, "reaches")};
}

}  // namespace

Result<> check_actions(const Area& area, const History& history) {
  for (const Step& step : history.steps) {
    if (std::ranges::find(area.actions, step.action, &Action::name) == area.actions.end())
      return fail(Errc::Invalid, "no action of " + area.name + " is called \"" + step.action + "\"");
  }
  return {};
}

Result<std::vector<Found>> read_found(const Area& area, const fs::path& folder) {
  std::vector<Found> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".history") continue;
    auto one = read_one(area, entry.path());
    if (!one) return one.take_error();
    all.push_back(std::move(*one));
  }
  if (error) return fail(Errc::Failed, "reading " + folder.native() + ": " + error.message());
  std::ranges::sort(all, {}, &Found::file);
  return all;
}

}  // namespace spark::histories
