#include "fleet/protocol/layout.hpp"

#include <algorithm>

namespace spark::fleet {

void Layout::add(Bytes size) {
  const std::uint64_t file = sizes_.size();
  sizes_.push_back(size);
  if (!is_packed(size)) {
    large_.push_back({file, pieces_});
    pieces_ += staging::piece_count(size);
    return;
  }
  if (open_.count == kPackFiles || open_.bytes + size > kPackBytes) finish();
  ++open_.count;
  open_.bytes += size;
  small_.push_back(static_cast<std::uint32_t>(file));
}

void Layout::finish() {
  if (open_.count > 0) packs_.push_back(open_);
  open_ = {small_.size(), 0, 0};
}

Piece Layout::piece(std::uint64_t unit) const {
  const auto after = std::ranges::upper_bound(large_, unit, {}, &Large::first_unit);
  const Large& large = *(after - 1);
  return {large.file, unit - large.first_unit};
}

std::uint64_t Layout::first_unit_of(std::uint64_t file) const {
  return std::ranges::lower_bound(large_, file, {}, &Large::file)->first_unit;
}

std::uint64_t Layout::small_of(std::uint64_t file) const {
  return static_cast<std::uint64_t>(std::ranges::lower_bound(small_, file) - small_.begin());
}

std::uint64_t Layout::pack_of(std::uint64_t file) const {
  const auto after = std::ranges::upper_bound(packs_, small_of(file), {}, &Pack::first);
  return pieces_ + static_cast<std::uint64_t>(after - packs_.begin()) - 1;
}

}  // namespace spark::fleet
