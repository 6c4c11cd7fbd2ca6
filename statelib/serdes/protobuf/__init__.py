"""Protocol Buffers: messages as structs, by a descriptor.

Begin with `serde`; `codec` does the work.
"""
