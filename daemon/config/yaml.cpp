#include "daemon/config/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "base/text.hpp"

namespace spark::config {
namespace {

constexpr std::size_t kMaxDepth = 16;  // the format needs five

Position position(const YAML::Mark& mark) {
  return {std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
}

[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& why) {
  throw YAML::ParserException(mark, why);
}

// Builds the tree from yaml-cpp's events. (Its own Node tree silently drops duplicate keys.)
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Problems& problems) : problems_(problems) {}

  bool has_document() const { return documents_ > 0; }
  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document starts here; a config is one document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    Node node;
    node.at = position(mark);
    place(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { refuse_anchor(mark, anchor); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    Node node;
    node.kind = Node::Kind::Scalar;
    node.at = position(mark);
    node.text = value;
    node.quoted = tag == "!";
    place(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::List, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::Map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  // An unfinished list or map, and the key of the next value.
  struct Open {
    Node node;
    std::optional<Member> pending;
    std::unordered_map<std::string, int> lines;  // for a map: the first line of each key
  };

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      refuse(mark, "anchors (&x), aliases (*x) and merge keys are not supported: write the value out");
    }
  }

  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, "tags (!x) are not supported: write the plain value");
    }
  }

  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (stack_.size() >= kMaxDepth) {
      refuse(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    Open opened;
    opened.node.kind = kind;
    opened.node.at = position(mark);
    stack_.push_back(std::move(opened));
  }

  void close() {
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    place(std::move(node));
  }

  void place(Node node) {
    if (stack_.empty()) {
      root_ = std::move(node);
    } else if (Open& top = stack_.back(); top.node.kind == Node::Kind::List) {
      top.node.items.push_back(std::move(node));
    } else if (!top.pending) {
      // A list or mapping has no text, and is not a key.
      top.pending = Member{std::move(node.text), node.at, {}};
    } else {
      add_member(top, std::move(node));
    }
  }

  void add_member(Open& top, Node value) {
    Member member = std::move(*top.pending);
    top.pending.reset();
    if (member.key.empty()) {
      problems_.add(member.at, "a key has to be a word");
      return;
    }
    // An absent value has no position of its own (yaml-cpp returns that of the next token). A key missing in
    // a mapping is reported at the mapping's name.
    if (value.kind == Node::Kind::Null || value.kind == Node::Kind::Map) value.at = member.at;
    member.value = std::move(value);
    const auto [first, is_new] = top.lines.emplace(member.key, member.at.line);
    if (!is_new) {
      problems_.add(member.at, "'" + printable(member.key) + "' is there twice, first in line " +
                                   std::to_string(first->second));
      return;
    }
    top.node.members.push_back(std::move(member));
  }

  Problems& problems_;
  std::vector<Open> stack_;
  Node root_;
  int documents_ = 0;
};

// yaml-cpp treats some control characters as the end of the file and drops the rest.
bool is_clean_text(std::string_view text, Problems& problems) {
  bool clean = true;
  int line_number = 0;
  for (std::string line : split(text, '\n')) {
    ++line_number;
    std::erase(line, '\t');
    if (line.ends_with('\r')) line.pop_back();
    if (printable(line) == line) continue;
    problems.add({line_number, 1}, "this line holds a control character or bytes that are not UTF-8");
    clean = false;
  }
  return clean;
}

}  // namespace

std::optional<Node> read_yaml(std::string_view text, Problems& problems) {
  if (!is_clean_text(text, problems)) return std::nullopt;
  TreeBuilder builder(problems);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    problems.add(position(error.mark), "reading YAML: " + printable(error.msg));
    return std::nullopt;
  }
  if (!builder.has_document()) {
    problems.add({}, "the file is empty; a config starts with 'version: 1'");
    return std::nullopt;
  }
  return builder.take();
}

}  // namespace spark::config
