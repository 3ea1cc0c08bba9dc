// The host's kernels_templates/intrinsics/cuda/copies.cuh.
CXXI_FN void cxxi_copy_async(void* to, const void* from, int bytes) {
  auto* const block = cxxi_emulation::Block::current();
  if (uintptr_t(to) % 16 != 0 || uintptr_t(from) % 16 != 0 || bytes < 0 || bytes > 16) {
    block->fail("cxxi_copy_async: an address that is not a multiple of 16, or more than 16 bytes");
    return;
  }
  block->note_store(to, 16);
  block->start(block->copies(), [=] {
    block->note_store(to, 16);
    std::memset(to, 0, 16);
    std::memcpy(to, from, size_t(bytes));
  });
}
CXXI_FN void cxxi_commit_copies() { cxxi_emulation::Block::current()->copies().commit(); }
template <int Pending>
void cxxi_wait_copies() {
  cxxi_emulation::Block::current()->copies().wait(Pending);
}
