// The host's kernels_templates/intrinsics/cuda/copies.cuh.
CXXI_FN void cxxi_copy_async(void* to, const void* from, int bytes) {
  if (uintptr_t(to) % 16 != 0 || uintptr_t(from) % 16 != 0 || bytes < 0 || bytes > 16) {
    cxxi_emulation::block->fail("cxxi_copy_async", "an address that is not a multiple of 16, or more than 16 bytes");
    return;
  }
  cxxi_emulation::block->note_store(to, 16);
  cxxi_emulation::block->start(cxxi_emulation::Queue::Copies, [=] {
    cxxi_emulation::block->note_store(to, 16);
    std::memset(to, 0, 16);
    std::memcpy(to, from, size_t(bytes));
  });
}
CXXI_FN void cxxi_commit_copies() { cxxi_emulation::block->commit(cxxi_emulation::Queue::Copies); }
template <int Pending>
void cxxi_wait_copies() {
  cxxi_emulation::block->wait(cxxi_emulation::Queue::Copies, Pending);
}
