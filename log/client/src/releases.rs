//! Since when Apache Kafka has an API, for errors that say which broker would do.

use thalweg_protocol::messages::ApiKey;

/// The release of Apache Kafka that has an API first, for APIs that brokers in use may lack.
pub(crate) fn first_release(api: ApiKey) -> Option<&'static str> {
    Some(match api {
        ApiKey::DescribeConfigs | ApiKey::DeleteRecords | ApiKey::WriteTxnMarkers => "0.11",
        ApiKey::DescribeLogDirs | ApiKey::CreatePartitions => "1.0",
        ApiKey::DeleteGroups => "1.1",
        ApiKey::ListGroups => "0.9 (filters by state since 2.6, by type since 3.8)",
        ApiKey::ElectLeaders => "2.2 (with a choice of elections since 2.4)",
        ApiKey::IncrementalAlterConfigs => "2.3",
        ApiKey::AlterPartitionReassignments | ApiKey::ListPartitionReassignments | ApiKey::OffsetDelete => {
            "2.4"
        }
        ApiKey::DescribeClientQuotas | ApiKey::AlterClientQuotas => "2.6",
        ApiKey::UpdateFeatures => "2.7 (with kinds of downgrades since 3.3)",
        ApiKey::DescribeCluster | ApiKey::DescribeProducers => "2.8",
        ApiKey::DescribeTransactions => "3.0",
        ApiKey::ListTransactions => "3.0 (its version 2 since 4.1)",
        ApiKey::DescribeQuorum => "3.3",
        ApiKey::ConsumerGroupHeartbeat | ApiKey::ConsumerGroupDescribe => "4.0",
        ApiKey::ListConfigResources => "4.1",
        ApiKey::ShareGroupHeartbeat => "4.1 (turned on by default since 4.2)",
        ApiKey::ShareGroupDescribe | ApiKey::AlterShareGroupOffsets | ApiKey::DeleteShareGroupOffsets => {
            "4.1"
        }
        ApiKey::DescribeShareGroupOffsets => "4.1 (its version 1, with lags, since 4.2)",
        ApiKey::ShareFetch | ApiKey::ShareAcknowledge => "4.1 (its version 2 since 4.2)",
        _ => return None,
    })
}
