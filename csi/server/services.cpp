#include "csi/server/services.hpp"

#include <algorithm>
#include <chrono>

#include "base/text.hpp"
#include "base/version.hpp"

namespace spark::csi {
namespace {

grpc::Status answer_with(const Status& status) {
  if (status.is_ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code), status.sentence};
}

PublishRequest from_wire(const ::csi::v1::NodePublishVolumeRequest& wire) {
  PublishRequest request;
  request.volume_id = wire.volume_id();
  request.target_path = wire.target_path();
  request.is_mount = wire.volume_capability().has_mount();
  request.is_block = wire.volume_capability().has_block();
  const auto& flags = wire.volume_capability().mount().mount_flags();
  request.mount_flags.assign(flags.begin(), flags.end());
  request.context.insert(wire.volume_context().begin(), wire.volume_context().end());
  return request;
}

}  // namespace

grpc::Status IdentityService::GetPluginInfo(grpc::ServerContext* /*context*/,
                                            const ::csi::v1::GetPluginInfoRequest* /*request*/,
                                            ::csi::v1::GetPluginInfoResponse* answer) {
  answer->set_name(kDriver);
  answer->set_vendor_version(kVersion);
  return grpc::Status::OK;
}

grpc::Status IdentityService::GetPluginCapabilities(
    grpc::ServerContext* /*context*/, const ::csi::v1::GetPluginCapabilitiesRequest* /*request*/,
    ::csi::v1::GetPluginCapabilitiesResponse* /*answer*/) {
  return grpc::Status::OK;  // this driver has no controller
}

grpc::Status IdentityService::Probe(grpc::ServerContext* /*context*/,
                                    const ::csi::v1::ProbeRequest* /*request*/,
                                    ::csi::v1::ProbeResponse* answer) {
  answer->mutable_ready()->set_value(daemon_.is_healthy());
  return grpc::Status::OK;
}

Call NodeService::call_of(const grpc::ServerContext& context) const {
  Call call;
  call.begin = std::chrono::steady_clock::now();
  // For a call without a deadline, gRPC returns one in the far future.
  const auto left = context.deadline() - std::chrono::system_clock::now();
  call.end = call.begin + std::clamp<std::chrono::system_clock::duration>(left, Duration(0), kKubeletWaits);
  call.is_abandoned = [&context, this] { return stop_.load() || context.IsCancelled(); };
  return call;
}

grpc::Status NodeService::NodePublishVolume(grpc::ServerContext* context,
                                            const ::csi::v1::NodePublishVolumeRequest* request,
                                            ::csi::v1::NodePublishVolumeResponse* /*answer*/) {
  return answer_with(node_.publish(from_wire(*request), call_of(*context)));
}

grpc::Status NodeService::NodeUnpublishVolume(grpc::ServerContext* context,
                                              const ::csi::v1::NodeUnpublishVolumeRequest* request,
                                              ::csi::v1::NodeUnpublishVolumeResponse* /*answer*/) {
  return answer_with(node_.unpublish(request->volume_id(), request->target_path(), call_of(*context)));
}

grpc::Status NodeService::NodeGetVolumeStats(grpc::ServerContext* /*context*/,
                                             const ::csi::v1::NodeGetVolumeStatsRequest* request,
                                             ::csi::v1::NodeGetVolumeStatsResponse* answer) {
  const auto usage = node_.usage(request->volume_id(), request->volume_path());
  if (!usage) return answer_with(status_of(usage.error()));
  ::csi::v1::VolumeUsage* bytes = answer->add_usage();
  bytes->set_unit(::csi::v1::VolumeUsage::BYTES);
  bytes->set_total(usage->bytes);
  bytes->set_available(usage->free_bytes);
  bytes->set_used(usage->used_bytes);
  ::csi::v1::VolumeUsage* inodes = answer->add_usage();
  inodes->set_unit(::csi::v1::VolumeUsage::INODES);
  inodes->set_total(usage->inodes);
  inodes->set_available(usage->free_inodes);
  inodes->set_used(usage->used_inodes);
  return grpc::Status::OK;
}

grpc::Status NodeService::NodeGetCapabilities(grpc::ServerContext* /*context*/,
                                              const ::csi::v1::NodeGetCapabilitiesRequest* /*request*/,
                                              ::csi::v1::NodeGetCapabilitiesResponse* answer) {
  answer->add_capabilities()->mutable_rpc()->set_type(
      ::csi::v1::NodeServiceCapability::RPC::GET_VOLUME_STATS);
  return grpc::Status::OK;
}

grpc::Status NodeService::NodeGetInfo(grpc::ServerContext* /*context*/,
                                      const ::csi::v1::NodeGetInfoRequest* /*request*/,
                                      ::csi::v1::NodeGetInfoResponse* answer) {
  answer->set_node_id(node_id_);
  return grpc::Status::OK;
}

grpc::Status RegistrationService::GetInfo(grpc::ServerContext* /*context*/,
                                          const ::pluginregistration::InfoRequest* /*request*/,
                                          ::pluginregistration::PluginInfo* answer) {
  answer->set_type("CSIPlugin");
  answer->set_name(kDriver);
  answer->set_endpoint(endpoint_);
  answer->add_supported_versions("1.0.0");
  return grpc::Status::OK;
}

grpc::Status RegistrationService::NotifyRegistrationStatus(
    grpc::ServerContext* /*context*/, const ::pluginregistration::RegistrationStatus* request,
    ::pluginregistration::RegistrationStatusResponse* /*answer*/) {
  if (request->plugin_registered()) {
    say_("kubelet has registered the driver");
  } else {
    refused_(printable(request->error()));
  }
  return grpc::Status::OK;
}

}  // namespace spark::csi
