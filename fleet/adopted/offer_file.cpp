#include "fleet/adopted/offer_file.hpp"

#include <sys/stat.h>

#include "staging/manifest/names.hpp"
#include "staging/models/model.hpp"

namespace spark::fleet {

std::filesystem::path offer_file(const std::filesystem::path& state_dir, const std::string& dataset) {
  return state_dir / "adopted" / (staging::folder_name(dataset) + ".manifest");
}

std::uint64_t number_of(const std::filesystem::path& offer) {
  struct stat info {};
  return ::lstat(offer.c_str(), &info) == 0 ? info.st_ino : 0;
}

std::filesystem::path aside_of(const std::filesystem::path& offer) {
  return offer.native() + ".aside";
}

void set_aside(const std::filesystem::path& offer) {
  std::error_code failed;
  std::filesystem::rename(offer, aside_of(offer), failed);
  if (failed) std::filesystem::remove(offer, failed);
}

std::optional<OfferSummary> read_offer(const std::filesystem::path& offer, const std::string& definition) {
  auto manifest = staging::ManifestReader::open(offer);
  if (!manifest || manifest->header().definition != definition) return std::nullopt;
  const auto record = staging::parse_model_record(manifest->header().model);
  auto summary = staging::summary_of(*manifest);
  if (!summary) return std::nullopt;
  return OfferSummary{std::move(*summary), record ? staging::summary_text(*record) : ""};
}

}  // namespace spark::fleet
