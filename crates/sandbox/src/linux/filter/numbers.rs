//! System call numbers of the supported processors.

#[cfg(target_arch = "x86_64")]
mod here {
    pub(crate) const PROCESSOR: u32 = 0xc000_003e;
    pub(crate) const CLONE: i64 = 56;
    pub(crate) const UNSHARE: i64 = 272;
    pub(crate) const IOCTL: i64 = 16;
    pub(crate) const PERSONALITY: i64 = 135;
    pub(crate) const SOCKET: i64 = 41;
    pub(crate) const SOCKETPAIR: i64 = 53;
    pub(crate) const CONNECT: i64 = 42;
    pub(crate) const TRUNCATE: i64 = 76;

    pub(crate) const PRLIMIT: i64 = 302;

    /// Calls that change another process, and the argument that names it; zero is the caller.
    pub(crate) const OF_OTHERS: &[(i64, u8)] = &[
        (141, 1), // setpriority
        (142, 0), // sched_setparam
        (144, 0), // sched_setscheduler
        (203, 0), // sched_setaffinity
        (251, 1), // ioprio_set
        (314, 0), // sched_setattr
    ];

    /// Calls that set the mode of a file, and the argument that holds it.
    pub(crate) const MODES: &[(i64, u8)] = &[
        (90, 1),  // chmod
        (91, 1),  // fchmod
        (268, 2), // fchmodat
        (452, 2), // fchmodat2
        (85, 1),  // creat
        (133, 1), // mknod
        (259, 2), // mknodat
    ];

    /// Calls that open a file, and the argument that holds the flags; the mode follows.
    pub(crate) const OPENS: &[(i64, u8)] = &[
        (2, 1),   // open
        (257, 2), // openat
    ];

    /// Calls that are refused with any arguments.
    pub(crate) const ALWAYS: &[i64] = &[
        101, // ptrace
        310, // process_vm_readv
        311, // process_vm_writev
        312, // kcmp
        438, // pidfd_getfd
        321, // bpf
        323, // userfaultfd
        298, // perf_event_open
        248, // add_key
        249, // request_key
        250, // keyctl
        246, // kexec_load
        320, // kexec_file_load
        425, // io_uring_setup
        426, // io_uring_enter
        427, // io_uring_register
        165, // mount
        166, // umount2
        155, // pivot_root
        161, // chroot
        428, // open_tree
        429, // move_mount
        430, // fsopen
        431, // fsconfig
        432, // fsmount
        433, // fspick
        442, // mount_setattr
        467, // open_tree_attr
        308, // setns
        304, // open_by_handle_at
        300, // fanotify_init
        179, // quotactl
        443, // quotactl_fd
        167, // swapon
        168, // swapoff
        169, // reboot
        170, // sethostname
        171, // setdomainname
        172, // iopl
        173, // ioperm
        175, // init_module
        313, // finit_module
        176, // delete_module
        163, // acct
        164, // settimeofday
        227, // clock_settime
        103, // syslog
        153, // vhangup
        134, // uselib
        212, // lookup_dcookie
        460, // lsm_set_self_attr
    ];
}

#[cfg(target_arch = "aarch64")]
mod here {
    pub(crate) const PROCESSOR: u32 = 0xc000_00b7;
    pub(crate) const CLONE: i64 = 220;
    pub(crate) const UNSHARE: i64 = 97;
    pub(crate) const IOCTL: i64 = 29;
    pub(crate) const PERSONALITY: i64 = 92;
    pub(crate) const SOCKET: i64 = 198;
    pub(crate) const SOCKETPAIR: i64 = 199;
    pub(crate) const CONNECT: i64 = 203;
    pub(crate) const TRUNCATE: i64 = 45;

    pub(crate) const PRLIMIT: i64 = 261;

    /// Calls that change another process, and the argument that names it; zero is the caller.
    pub(crate) const OF_OTHERS: &[(i64, u8)] = &[
        (140, 1), // setpriority
        (118, 0), // sched_setparam
        (119, 0), // sched_setscheduler
        (122, 0), // sched_setaffinity
        (30, 1),  // ioprio_set
        (274, 0), // sched_setattr
    ];

    /// Calls that set the mode of a file, and the argument that holds it.
    pub(crate) const MODES: &[(i64, u8)] = &[
        (52, 1),  // fchmod
        (53, 2),  // fchmodat
        (452, 2), // fchmodat2
        (33, 2),  // mknodat
    ];

    /// Calls that open a file, and the argument that holds the flags; the mode follows.
    pub(crate) const OPENS: &[(i64, u8)] = &[
        (56, 2), // openat
    ];

    /// Calls that are refused with any arguments.
    pub(crate) const ALWAYS: &[i64] = &[
        117, // ptrace
        270, // process_vm_readv
        271, // process_vm_writev
        272, // kcmp
        438, // pidfd_getfd
        280, // bpf
        282, // userfaultfd
        241, // perf_event_open
        217, // add_key
        218, // request_key
        219, // keyctl
        104, // kexec_load
        294, // kexec_file_load
        425, // io_uring_setup
        426, // io_uring_enter
        427, // io_uring_register
        40,  // mount
        39,  // umount2
        41,  // pivot_root
        51,  // chroot
        428, // open_tree
        429, // move_mount
        430, // fsopen
        431, // fsconfig
        432, // fsmount
        433, // fspick
        442, // mount_setattr
        467, // open_tree_attr
        268, // setns
        265, // open_by_handle_at
        262, // fanotify_init
        60,  // quotactl
        443, // quotactl_fd
        224, // swapon
        225, // swapoff
        142, // reboot
        161, // sethostname
        162, // setdomainname
        105, // init_module
        273, // finit_module
        106, // delete_module
        89,  // acct
        170, // settimeofday
        112, // clock_settime
        116, // syslog
        58,  // vhangup
        18,  // lookup_dcookie
        460, // lsm_set_self_attr
    ];
}

/// Placeholders for other processors, which have no filter.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod here {
    pub(crate) const PROCESSOR: u32 = 0;
    pub(crate) const CLONE: i64 = 0;
    pub(crate) const UNSHARE: i64 = 0;
    pub(crate) const IOCTL: i64 = 0;
    pub(crate) const PERSONALITY: i64 = 0;
    pub(crate) const SOCKET: i64 = 0;
    pub(crate) const SOCKETPAIR: i64 = 0;
    pub(crate) const CONNECT: i64 = 0;
    pub(crate) const TRUNCATE: i64 = 0;
    pub(crate) const PRLIMIT: i64 = 0;
    pub(crate) const OF_OTHERS: &[(i64, u8)] = &[];
    pub(crate) const MODES: &[(i64, u8)] = &[];
    pub(crate) const OPENS: &[(i64, u8)] = &[];
    pub(crate) const ALWAYS: &[i64] = &[];
}

/// The same numbers on all processors.
pub(super) const CLONE3: u32 = 435;
pub(super) const OPENAT2: u32 = 437;
pub(super) use self::here::*;
