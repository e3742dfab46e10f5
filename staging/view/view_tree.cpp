#include "staging/view/view_tree.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

Result<ViewTree> ViewTree::read(const std::filesystem::path& manifest) {
  auto entries = ManifestReader::open(manifest);
  if (!entries) return entries.take_error();
  ViewTree tree;
  while (auto entry = entries->next())
    if (auto added = tree.add(std::move(*entry)); !added) return added.take_error();
  if (auto read = entries->error(); !read) return read.take_error();
  if (tree.nodes_.empty() || tree.nodes_.front().entry.type != EntryType::Folder)
    return fail(Errc::Unsupported, "a live view of one file is not possible");
  tree.list_children();
  return tree;
}

Result<> ViewTree::add(Entry entry) {
  const auto number = static_cast<NodeNumber>(nodes_.size());
  if (number == std::numeric_limits<NodeNumber>::max())
    return fail(Errc::Unsupported, "the set has too many entries for a live view");
  ViewNode node;
  node.file = number;
  const std::string_view folder = folder_of(entry.path);
  const auto parent = number == 0 ? 0 : find(folder.substr(0, folder.empty() ? 0 : folder.size() - 1));
  const auto file = entry.link_to.empty() ? number : find(entry.link_to);
  const bool is_right = parent && file && (number == 0 || nodes_[*parent].entry.type == EntryType::Folder) &&
                        (*file == number || is_content(nodes_[*file].entry));
  if (!is_right)
    return fail(Errc::Mismatch, "the list of entries is no tree: " + printable(entry.path.view()));
  node.folder = *parent;
  if (*file != number) {
    node.file = *file;
    ++nodes_[*file].links;
  }
  node.first_unit = units_.add(entry);
  if (is_content(entry)) bytes_ += entry.size;
  if (number != 0) ++nodes_[*parent].count;
  node.entry = std::move(entry);
  nodes_.push_back(std::move(node));
  return {};
}

std::optional<NodeNumber> ViewTree::find(std::string_view path) const {
  const auto at =
      std::ranges::lower_bound(nodes_, path, {}, [](const ViewNode& node) { return node.entry.path.view(); });
  if (at == nodes_.end() || at->entry.path.view() != path) return std::nullopt;
  return static_cast<NodeNumber>(at - nodes_.begin());
}

void ViewTree::list_children() {
  std::uint32_t next = 0;
  for (ViewNode& node : nodes_) {
    node.children = next;
    next += std::exchange(node.count, 0);
  }
  children_.resize(next);
  for (NodeNumber number = 1; number < size(); ++number) {
    ViewNode& folder = nodes_[nodes_[number].folder];
    children_[folder.children + folder.count++] = number;
    if (nodes_[number].entry.type == EntryType::Folder) ++folder.links;
  }
  for (ViewNode& node : nodes_)
    if (node.entry.type == EntryType::Folder) ++node.links;  // its own "."
}

std::span<const NodeNumber> ViewTree::children(NodeNumber folder) const {
  const ViewNode& node = nodes_[folder];
  return std::span(children_).subspan(node.children, node.count);
}

std::optional<NodeNumber> ViewTree::child(NodeNumber folder, std::string_view name) const {
  const auto all = children(folder);
  const auto at = std::ranges::lower_bound(
      all, name, {}, [this](NodeNumber number) { return name_of(nodes_[number].entry.path.view()); });
  if (at == all.end() || name_of(nodes_[*at].entry.path.view()) != name) return std::nullopt;
  return *at;
}

}  // namespace spark::staging
