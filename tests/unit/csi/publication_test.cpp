#include "csi/publication.hpp"

#include "tests/unit/csi/fixture.hpp"

namespace spark::csi {
namespace {

using testing::HasSubstr;

std::string refusal(const PublishRequest& request) {
  const auto read = read_publication(request);
  if (read) return "accepted";
  EXPECT_EQ(read.error().kind, Errc::Invalid);
  return read.error().message();
}

TEST(Publication, IsADatasetForAPod) {
  const auto read = read_publication(request_for("imagenet"));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->volume, "csi-1f");
  EXPECT_EQ(read->target, "/pods/1/mount");
  EXPECT_EQ(read->dataset, "imagenet");
  EXPECT_EQ(read->pod_namespace, "team-b");
  EXPECT_EQ(read->pod, "team-b/train-0");
}

TEST(Publication, NeedsEachArgument) {
  const auto without = [](const std::function<void(PublishRequest&)>& change) {
    PublishRequest request = request_for("imagenet");
    change(request);
    return refusal(request);
  };
  EXPECT_THAT(without([](auto& r) { r.volume_id.clear(); }), HasSubstr("no volume ID"));
  EXPECT_THAT(without([](auto& r) { r.volume_id = "../x"; }), HasSubstr("not a volume ID"));
  EXPECT_THAT(without([](auto& r) { r.volume_id = std::string(129, 'a'); }), HasSubstr("not a volume ID"));
  EXPECT_THAT(without([](auto& r) { r.target_path.clear(); }), HasSubstr("no target path"));
  EXPECT_THAT(without([](auto& r) { r.target_path = "pods/1"; }), HasSubstr("not an absolute path"));
  EXPECT_THAT(without([](auto& r) { r.target_path = "/"; }), HasSubstr("not an absolute path"));
  EXPECT_THAT(without([](auto& r) { r.is_mount = false; }), HasSubstr("no volume capability"));
  EXPECT_THAT(without([](auto& r) { r.is_block = true; }), HasSubstr("block device"));
  EXPECT_THAT(without([](auto& r) { r.mount_flags = {"ro", "exec"}; }), HasSubstr("'exec' is not supported"));
  EXPECT_THAT(without([](auto& r) { r.context.clear(); }), HasSubstr("neither 'dataset' nor 'output'"));
  EXPECT_THAT(without([](auto& r) { r.context["csi.storage.k8s.io/ephemeral"] = "false"; }),
              HasSubstr("persistent"));
}

TEST(Publication, RefusesVolumePathsAndUnknownKeys) {
  EXPECT_THAT(refusal(request_for("datasets:secret/path")), HasSubstr("a path on a volume"));
  PublishRequest request = request_for("imagenet");
  request.context["datset"] = "x";
  EXPECT_THAT(refusal(request), HasSubstr("unknown key 'datset'"));
}

TEST(Publication, IsADatasetOrAnOutputAndNotBoth) {
  const auto read = read_publication(request_for_output("run7"));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->is_output());
  EXPECT_EQ(read->output, "run7");
  PublishRequest request = request_for("imagenet");
  request.context["output"] = "run7";
  EXPECT_THAT(refusal(request), HasSubstr("both 'dataset' and 'output'"));
}

TEST(Publication, MayBeTakenBeforeItsCopyIsComplete) {
  const auto with = [](PublishRequest request, const std::string& now) {
    request.context["now"] = now;
    return request;
  };
  EXPECT_TRUE(read_publication(with(request_for("imagenet"), "true"))->now);
  EXPECT_FALSE(read_publication(with(request_for("imagenet"), "false"))->now);
  EXPECT_FALSE(read_publication(request_for("imagenet"))->now);
  for (const char* wrong : {"", "yes", "True", "1", " true"})
    EXPECT_THAT(refusal(with(request_for("imagenet"), wrong)),
                HasSubstr("now is '" + std::string(wrong) + "'"));
  EXPECT_THAT(refusal(with(request_for_output("run7"), "true")), HasSubstr("'now' is for a dataset"));
  EXPECT_THAT(refusal(with(request_for_output("run7"), "no")), HasSubstr("now is 'no'"));
}

TEST(Publication, NormalizesItsTargetPath) {
  EXPECT_EQ(*read_target_path("/pods//1/./mount/"), "/pods/1/mount");
  EXPECT_FALSE(read_target_path(std::string("/a\0b", 4)));
}

}  // namespace
}  // namespace spark::csi
