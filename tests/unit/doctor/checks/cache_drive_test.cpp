// doctor's findings about the drive of the staged copies.
#include "tests/unit/doctor/fixture.hpp"

namespace spark::doctor {
namespace {

using ::testing::HasSubstr;

// Its folder appears when the bounded process looks: what had looked before would have found none.
TEST_F(Doctor, NothingLooksAtTheCacheOutsideOfABoundedProcess) {
  const auto cache = fake.files.root() / "var/lib/spark-stage/cache";
  std::filesystem::remove_all(cache);
  auto host = fake.host();
  host.bounded = [&, within = host.bounded](const std::function<Result<json::object>()>& work) {
    std::filesystem::create_directories(cache / ".trash");
    std::filesystem::permissions(cache / ".trash", std::filesystem::perms::all);
    return within(work);
  };
  EXPECT_THAT(pretty(to_json(examine(host))), HasSubstr("other users can open"));
}

}  // namespace
}  // namespace spark::doctor
